{#- Python of the distribution, with what builds its packages. #}
makina-python-packages:
  pkg.installed:
    - pkgs: [python3, python3-dev, python3-venv, python3-pip]

{#- Projects require the archive of old releases for Ubuntu by this name; another distribution has none. #}
deadsnakes-ppa:
{%- if grains['os'] == 'Ubuntu' %}
  pkgrepo.managed:
    - ppa: deadsnakes/ppa
{%- else %}
  pkgrepo.absent:
    - name: deb http://ppa.launchpad.net/fkrull/deadsnakes/ubuntu {{ grains.get('oscodename', '') }} main
{%- endif %}
