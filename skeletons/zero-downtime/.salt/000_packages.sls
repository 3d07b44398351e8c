{# Packages of Debian; the virtualenv sees the Python ones, so that a first deployment downloads nothing from PyPI. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-packages:
  pkg.installed:
    - pkgs:
      - nginx-light
      - curl
      - python3-venv
      - python3-flask
      - python3-gunicorn
