{#- Go of the distribution. #}
include:
  - makina-states.localsettings.golang.hooks

golang-packages:
  pkg.installed:
    - pkgs: [golang-go]
    - watch:
      - mc_proxy: golang-pre-install
    - watch_in:
      - mc_proxy: golang-post-install
