#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check.py - looks into files of a release: tests/dist/check.py spdx|oci|workflow ARGUMENT...

    spdx FILE PROGRAM        FILE is SPDX 2.3 as JSON, and is about PROGRAM
    oci ARCHIVE NAME FOLDER  ARCHIVE is an OCI image called NAME; its files are unpacked to FOLDER
    workflow FILE            FILE is a workflow of GitHub whose jobs and steps are complete, and what its steps run is here

Prints what is wrong, a line each, and ends with 1; else prints nothing.
"""
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile

wrong = []


def need(condition, text):
    if not condition:
        wrong.append(text)
    return condition


# ---- SPDX: what its specification requires of each part (version 2.3, clauses 6, 7, 8, 11) ------------------------------

ID = r'SPDXRef-[A-Za-z0-9.-]+'
# No CONTAINS: it is allowed only for a package whose files are all listed (filesAnalyzed).
RELATIONS = {'DESCRIBES', 'GENERATED_FROM', 'STATIC_LINK'}


def has(what, name, /, **members):
    """Each member is there and matches."""
    for member, pattern in members.items():
        value = what.get(member)
        need(isinstance(value, str) and re.fullmatch(pattern, value, re.S), '%s: %s is %r' % (name, member, value))


def spdx(path, program):
    with open(path, encoding='utf-8') as f:
        doc = json.load(f)
    has(doc, 'document', spdxVersion='SPDX-2.3', dataLicense='CC0-1.0', SPDXID='SPDXRef-DOCUMENT', name='cudatrace-.+',
        documentNamespace='[a-z]+:[^#]+')
    has(doc['creationInfo'], 'creationInfo', created=r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ')
    need(all(re.match('(Tool|Organization|Person): .', c) for c in doc['creationInfo']['creators']), 'creators')
    ids = {'SPDXRef-DOCUMENT'}
    for package in doc['packages']:
        name = 'package %s' % package.get('name')
        has(package, name, SPDXID=ID, name='.+', versionInfo='.+', downloadLocation='NOASSERTION|NONE|[a-z]+:.+',
            licenseDeclared='NOASSERTION|[A-Za-z0-9.+-]+', licenseConcluded='NOASSERTION|[A-Za-z0-9.+-]+', copyrightText='.+')
        need(package.get('filesAnalyzed') is False, name + ': files are not listed, so filesAnalyzed must be false')
        need(package['SPDXID'] not in ids, name + ': its id is there twice')
        ids.add(package['SPDXID'])
        for ref in package.get('externalRefs', []):
            has(ref, name, referenceCategory='PACKAGE-MANAGER', referenceType='purl', referenceLocator=r'pkg:deb/debian/[a-z0-9.%+-]+@[^?:]+\?arch=.+')
    with open(program, 'rb') as f:
        data = f.read()
    for part in doc['files']:
        has(part, 'file', SPDXID=ID, fileName=r'\./.+', copyrightText='.+', licenseConcluded='.+')
        ids.add(part['SPDXID'])
        sums = {c['algorithm']: c['checksumValue'] for c in part['checksums']}
        need(sums == {'SHA1': hashlib.sha1(data).hexdigest(), 'SHA256': hashlib.sha256(data).hexdigest()}, 'the sums are not those of ' + program)
    for relation in doc['relationships']:
        need(relation['relationshipType'] in RELATIONS, 'relation %s' % relation['relationshipType'])
        need(relation['spdxElementId'] in ids and relation['relatedSpdxElement'] in ids, 'relation of what is not there: %s' % relation)
    linked = {r['relatedSpdxElement'] for r in doc['relationships'] if r['relationshipType'] == 'STATIC_LINK'}
    need(linked == ids - {'SPDXRef-DOCUMENT', 'SPDXRef-cudatrace', 'SPDXRef-program'}, 'packages that nothing is linked with')
    # libraries that every build has, and one of the toolchain
    for library in ('libbpf-dev', 'libdw-dev', 'libc6-dev', 'libssl-dev'):
        need('SPDXRef-' + library in linked, library + ' is not listed')


# ---- the image ---------------------------------------------------------------------------------------------------------

def oci(archive, name, folder):
    with tarfile.open(archive) as tar:
        blobs = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}

    def blob(digest):
        data = blobs['blobs/sha256/' + digest.split(':')[1]]
        need('sha256:' + hashlib.sha256(data).hexdigest() == digest, 'the blob %s has another sum' % digest)
        return data

    need(json.loads(blobs['oci-layout']) == {'imageLayoutVersion': '1.0.0'}, 'oci-layout')
    manifests = json.loads(blobs['index.json'])['manifests']
    need(len(manifests) == 1, '%d manifests' % len(manifests))
    need(manifests[0]['annotations']['org.opencontainers.image.ref.name'] == name, 'the name is %s' % manifests[0]['annotations'])
    manifest = json.loads(blob(manifests[0]['digest']))
    config = json.loads(blob(manifest['config']['digest']))
    need(config['os'] == 'linux', 'os')
    run = config['config']
    need(run['Entrypoint'] == ['/cudatrace'] and run['Cmd'] == ['serve', '--listen', ':19400'], 'what it runs: %s' % run)
    need(run['User'] == '65534:65534', 'it runs as %s' % run.get('User'))
    for layer in manifest['layers']:
        with tarfile.open(fileobj=io.BytesIO(blob(layer['digest']))) as tar:
            tar.extractall(folder)


# ---- the workflow ------------------------------------------------------------------------------------------------------

def workflow(path):
    import yaml  # pylint: disable=import-outside-toplevel
    with open(path, encoding='utf-8') as f:
        flow = yaml.safe_load(f)
    # YAML 1.1 takes `on` for true
    need(flow.get('on', flow.get(True)) == {'push': {'tags': ['v*']}}, 'it runs for something else than tags')
    need(flow['permissions'] == {'contents': 'read'}, 'permissions of all jobs')
    for name, job in flow['jobs'].items():
        need(not set(job) - {'runs-on', 'container', 'timeout-minutes', 'steps', 'needs', 'permissions'}, 'job %s: members %s' % (name, set(job)))
        need('runs-on' in job and 'timeout-minutes' in job, 'job %s' % name)
        need(job.get('needs', 'build') in flow['jobs'], 'job %s needs what is not there' % name)
        for step in job['steps']:
            need(('run' in step) != ('uses' in step), 'step %s has to run or to use' % step)
            need(not set(step) - {'name', 'run', 'uses', 'with', 'env'}, 'step %s: members' % step)
            need(re.fullmatch(r'actions/[a-z-]+@v\d+', step.get('uses', 'actions/x@v1')), 'step %s uses' % step)
            text = step.get('run', '')
            bad = subprocess.run(['bash', '-n'], input=text, capture_output=True, text=True).stderr
            need(not bad, 'step %s: %s' % (text, bad))
            for script in re.findall(r'(?<![\w/.])(?:scripts|tests)/[\w./-]+', text):
                need(os.access(script, os.X_OK), 'there is no ' + script)
            for targets in re.findall(r'\bmake (?:-\S+ )*([a-z ]+)', text):
                for target in targets.split():
                    need(subprocess.run(['make', '-n', target], capture_output=True).returncode == 0, 'make has no target ' + target)


{'spdx': spdx, 'oci': oci, 'workflow': workflow}[sys.argv[1]](*sys.argv[2:])
for text in wrong:
    print(text)
sys.exit(1 if wrong else 0)
