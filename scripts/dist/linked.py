#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""linked.py - what is linked into the static program: scripts/dist/linked.py PROGRAM INPUTS VERSION COMMIT LICENCES SBOM

INPUTS is what the linker said it read (ld -t -t). Each archive member and each start file belongs to a package of Debian. Of each such
package the licence texts are copied to the folder LICENCES, and SBOM becomes an SPDX 2.3 document (JSON) that names them. An archive of which no
member was taken is not linked in, and is left out. A file that belongs to no package is an error: its licence would be missing.
"""
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time


def inputs(path):
    """The files outside of this tree of which something is linked in."""
    found = set()
    with open(path, encoding='utf-8') as f:
        for line in f:
            member = re.fullmatch(r'\((.+)\)\S+', line.strip())
            name = member.group(1) if member else line.strip()
            # ld names an archive when it opens it, and each member that it takes
            if os.path.isabs(name) and (member or name.endswith('.o')):
                found.add(os.path.realpath(name))
    return sorted(found)


def say(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, 'LC_ALL': 'C'}).stdout


def owner(path):
    """The package of a file. What dpkg knows under /lib may be read under /usr/lib."""
    for name in (path, re.sub('^/usr/', '/', path)):
        try:
            return say('dpkg', '-S', name).split(': ')[0].split(',')[0]
        except subprocess.CalledProcessError:
            pass
    sys.exit('linked.py: %s is linked in and belongs to no package of Debian: its licence is not known' % path)


def packages(files):
    """{package: (version, source, source's version, architecture)}"""
    fields = '${Version}\\t${source:Package}\\t${source:Version}\\t${Architecture}'
    found = {}
    for name in sorted({owner(path) for path in files}):
        found[name.split(':')[0]] = say('dpkg-query', '-W', '-f', fields, name).split('\t')
    return found


def copyright_text(package):
    for name in ('copyright', 'copyright.gz'):
        path = '/usr/share/doc/%s/%s' % (package, name)
        if os.path.exists(path):
            with (gzip.open if name.endswith('.gz') else open)(path, 'rb') as f:
                return f.read()
    return sys.exit('linked.py: the package %s has no copyright file in /usr/share/doc' % package)


def common_licences(text):
    """Debian's files refer to the longer licences by their path."""
    # The name ends before the full stop of a sentence.
    named = set(re.findall(rb'/usr/share/common-licenses/([A-Za-z]+(?:-[0-9.]*[0-9])?)', text))
    return {name.decode() for name in named if os.path.exists('/usr/share/common-licenses/' + name.decode())}


def write_licences(folder, found):
    os.makedirs(folder)
    common = set()
    for package in found:
        text = copyright_text(package)
        common |= common_licences(text)
        with open(os.path.join(folder, package + '.txt'), 'wb') as f:
            f.write(text)
    for name in sorted(common):
        shutil.copyfile(os.path.realpath('/usr/share/common-licenses/' + name), os.path.join(folder, name + '.licence'))
    with open(os.path.join(folder, 'README'), 'w', encoding='utf-8') as f:
        f.write('cudatrace itself is under the BSD 2-clause licence (../LICENSE); its BPF programs are also under GPL-2.0.\n'
                'The program in this release is linked statically. Parts of these packages of Debian are in it; the file NAME.txt has\n'
                'the licence of the package NAME, and NAME.licence is a text that several of them refer to.\n\n')
        for package, (version, source, source_version, _) in found.items():
            f.write('%s %s (source: %s %s)\n' % (package, version, source, source_version))
        f.write('\nSome of them are under the LGPL. To link cudatrace with a changed library, take the source of cudatrace at the commit\n'
                'that `cudatrace --version` prints, install the library, and run `make static`.\n')


def digests(path):
    with open(path, 'rb') as f:
        data = f.read()
    return [{'algorithm': name.upper(), 'checksumValue': hashlib.new(name, data).hexdigest()} for name in ('sha1', 'sha256')]


def sbom(program, version, commit, found):
    when = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(int(os.environ['SOURCE_DATE_EPOCH'])))
    checksums = digests(program)
    own = {
        'SPDXID': 'SPDXRef-cudatrace', 'name': 'cudatrace', 'versionInfo': version, 'downloadLocation': 'NOASSERTION',
        'filesAnalyzed': False, 'licenseConcluded': 'BSD-2-Clause', 'licenseDeclared': 'BSD-2-Clause',
        'copyrightText': 'NOASSERTION', 'supplier': 'NOASSERTION', 'primaryPackagePurpose': 'APPLICATION',
    }
    if commit:
        own['sourceInfo'] = 'commit ' + commit
    program_file = {
        'SPDXID': 'SPDXRef-program', 'fileName': './bin/cudatrace', 'checksums': checksums, 'fileTypes': ['BINARY'],
        'licenseConcluded': 'NOASSERTION', 'licenseInfoInFiles': ['NOASSERTION'], 'copyrightText': 'NOASSERTION',
    }
    listed, relations = [own], [
        ('SPDXRef-DOCUMENT', 'DESCRIBES', 'SPDXRef-cudatrace'), ('SPDXRef-DOCUMENT', 'DESCRIBES', 'SPDXRef-program'),
        # not CONTAINS: SPDX allows that only for a package whose files are all listed
        ('SPDXRef-program', 'GENERATED_FROM', 'SPDXRef-cudatrace')]
    for package, (pkg_version, source, source_version, arch) in found.items():
        spdx_id = 'SPDXRef-' + re.sub('[^A-Za-z0-9.-]', '-', package)
        listed.append({
            'SPDXID': spdx_id, 'name': package, 'versionInfo': pkg_version, 'downloadLocation': 'NOASSERTION', 'filesAnalyzed': False,
            'licenseConcluded': 'NOASSERTION', 'licenseDeclared': 'NOASSERTION', 'copyrightText': 'NOASSERTION',
            'supplier': 'Organization: Debian', 'sourceInfo': 'built from Debian source package %s %s' % (source, source_version),
            'comment': 'licence text: licences/%s.txt' % package, 'primaryPackagePurpose': 'LIBRARY',
            'externalRefs': [{
                'referenceCategory': 'PACKAGE-MANAGER', 'referenceType': 'purl',
                'referenceLocator': 'pkg:deb/debian/%s@%s?arch=%s' % (
                    package.replace('+', '%2B'), pkg_version.replace('+', '%2B').replace(':', '%3A').replace('~', '~'), arch)}],
        })
        relations.append(('SPDXRef-program', 'STATIC_LINK', spdx_id))
    return {
        'spdxVersion': 'SPDX-2.3', 'dataLicense': 'CC0-1.0', 'SPDXID': 'SPDXRef-DOCUMENT', 'name': 'cudatrace-' + version,
        'documentNamespace': 'urn:cudatrace:spdx:%s:%s' % (version, checksums[1]['checksumValue']),
        'creationInfo': {'created': when, 'creators': ['Tool: cudatrace-make-dist']},
        'packages': listed, 'files': [program_file],
        'relationships': [{'spdxElementId': a, 'relationshipType': kind, 'relatedSpdxElement': b} for a, kind, b in relations],
    }


def main(program, inputs_path, version, commit, licences, sbom_path):
    found = packages(inputs(inputs_path))
    write_licences(licences, found)
    with open(sbom_path, 'w', encoding='utf-8') as f:
        json.dump(sbom(program, version, commit, found), f, indent=1)
        f.write('\n')


main(*sys.argv[1:])
