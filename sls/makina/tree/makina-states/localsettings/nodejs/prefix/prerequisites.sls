{#- install(version, …) unpacks a release of nodejs.org below the location of mc_nodejs.settings, checked against the sums that nodejs.org
    publishes for it, or against hash (a SHA-1, or TYPE=SUM). #}
{%- set settings = salt['mc_nodejs.settings']() %}
include:
  - makina-states.localsettings.nodejs.hooks

{%- macro install(version, dest=None, hash=None, suf='manual', binary=True, arch=None) %}
{%- set dest = (dest or settings.location ~ '/' ~ version).rstrip('/') %}
{%- set machine = arch or {'x86_64': 'x64', 'amd64': 'x64', 'aarch64': 'arm64', 'i686': 'x86'}.get(grains['cpuarch'], grains['cpuarch']) %}
{%- set release = settings.mirror ~ '/v' ~ version %}
{%- set name = 'node-v' ~ version ~ '-linux-' ~ machine %}
{%- if not binary %}{{ raise('nodejs: only the releases that are built are installed') }}{% endif %}
npm-version-{{ version | replace('.', '_') }}{{ suf }}:
  archive.extracted:
    - name: {{ dest }}
    - source: {{ release }}/{{ name }}.tar.gz
{%- if hash %}
    - source_hash: {{ hash if '=' in hash else 'sha1=' ~ hash }}
{%- else %}
    - source_hash: {{ release }}/SHASUMS256.txt
{%- endif %}
    - options: --strip-components=1
    - enforce_toplevel: false
    - if_missing: {{ dest }}/bin/node
    - watch:
      - mc_proxy: nodejs-pre-prefix-install
    - watch_in:
      - mc_proxy: nodejs-post-prefix-install
{%- endmacro %}
