{#- Pure-FTPd of the distribution. #}
include:
  - makina-states.services.ftp.pureftpd.hooks

ftpd-packages:
  pkg.installed:
    - pkgs: [pure-ftpd]
    - watch:
      - mc_proxy: ftpd-pre-installation-hook
    - watch_in:
      - mc_proxy: ftpd-post-installation-hook

ftpd-service:
  service.running:
    - name: pure-ftpd
    - enable: true
    - watch:
      - mc_proxy: ftpd-pre-restart-hook
    - watch_in:
      - mc_proxy: ftpd-post-restart-hook
