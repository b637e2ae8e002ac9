#!/usr/bin/env python3
"""spack_recipe.py SOURCE CMAKE - the recipe for Spack, without Spack: with stand-ins
for what it takes from there, of the same arguments, it is a class that a CMake
of this tree can be called with: every variable that it sets is an option."""
import os
import re
import subprocess
import sys
import tempfile
import types

source, cmake = sys.argv[1:]
path = os.path.join(source, 'packaging/spack/packages/pccl-mpi/package.py')
made = {'version': [], 'variant': [], 'depends_on': []}


def version(name, *, branch):
    made['version'].append((name, branch))


def variant(name, *, default, description):
    assert isinstance(default, bool) and description
    made['variant'].append(name)


def depends_on(spec, *, type=None, when=None):
    if when:
        assert when[0] in '+~' and when[1:] in made['variant'], when
    made['depends_on'].append(re.match(r'[\w-]+', spec).group(0))


class CMakePackage:
    def define(self, name, value):
        if isinstance(value, bool):
            value = 'ON' if value else 'OFF'
        return f'-D{name}={value}'

    def define_from_variant(self, name, of):
        assert of in made['variant'], of
        return self.define(name, False)  # which needs nothing


stub = types.ModuleType('spack.package')
for name, what in (('version', version), ('variant', variant),
                   ('depends_on', depends_on), ('CMakePackage', CMakePackage),
                   ('license', lambda name: name)):
    setattr(stub, name, what)
sys.modules['spack'] = types.ModuleType('spack')
sys.modules['spack.package'] = stub

scope = {'__file__': path, '__name__': 'recipe'}
with open(path, encoding='utf-8') as file:
    exec(compile(file.read(), path, 'exec'), scope)
recipe = scope['PcclMpi']
assert os.path.exists(os.path.join(scope['CHECKOUT'], 'include/pccl.h'))
assert made['version'] and {'libev', 'cmake'} <= set(made['depends_on']), made

arguments = recipe().cmake_args()
with tempfile.TemporaryDirectory() as work:
    said = subprocess.run(
        [cmake, '-S', source, '-B', work, '-DPCCL_CORES_ONLY=OFF',
         *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False)
    # CMake names what a project has not read.
    if said.returncode or 'not used' in said.stdout:
        sys.exit(f'{arguments}: {said.stdout}')
print(f'cmake takes {" ".join(arguments)}')
