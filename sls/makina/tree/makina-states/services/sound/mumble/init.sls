{#- The Mumble server of the distribution. #}
mumble-packages:
  pkg.installed:
    - pkgs: [mumble-server]

mumble-service:
  service.running:
    - name: mumble-server
    - enable: true
    - require:
      - pkg: mumble-packages
