{#- Postfix of the distribution, checked before it is restarted. Its configuration is the project's. #}
include:
  - makina-states.services.mail.postfix.hooks

postfix-packages:
  pkg.installed:
    - pkgs: [postfix]
    - watch:
      - mc_proxy: postfix-preinstall
    - watch_in:
      - mc_proxy: postfix-postinstall

postfix-check:
  cmd.run:
    - name: postfix check
    - onchanges:
      - mc_proxy: postfix-postconf
    - require_in:
      - mc_proxy: postfix-prehardrestart

postfix-service:
  service.running:
    - name: postfix
    - enable: true
    - watch:
      - mc_proxy: postfix-prerestart
    - watch_in:
      - mc_proxy: postfix-postrestart
