{#- corpusops.bootstrap at the place that mc_locations.settings names: its repository, and its own installer. #}
{%- set cops = salt['mc_locations.settings']().cops %}
corpusops-packages:
  pkg.installed:
    - pkgs: [git, python3-venv, python3-dev, build-essential]

corpusops-checkout:
  mc_git.latest:
    - name: https://github.com/corpusops/corpusops.bootstrap.git
    - target: {{ cops }}
    - require:
      - pkg: corpusops-packages

corpusops-installed:
  cmd.run:
    - name: {{ cops }}/bin/install.sh -C -s
    - unless: test -e {{ cops }}/venv/bin/ansible
    - require:
      - mc_git: corpusops-checkout

corpusops-checkouts-post:
  mc_proxy.hook:
    - require:
      - cmd: corpusops-installed
