{# Packages of Debian. npm is a large one and is installed when there is a package-lock.json to install from. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-packages:
  pkg.installed:
    - pkgs:
      - nginx-light
      - nodejs

{{cfg.name}}-npm:
  pkg.installed:
    - name: npm
    - onlyif: test -e {{cfg.project_root}}/package-lock.json
