{# Packages of Debian. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-packages:
  pkg.installed:
    - pkgs:
      - nginx-light
      - podman
      - podman-compose
      - netavark
      - aardvark-dns
      - iptables
