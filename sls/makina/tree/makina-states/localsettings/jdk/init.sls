{#- Java of the distribution. #}
include:
  - makina-states.localsettings.jdk.hooks

makina-states-jdk_begin-packages:
  pkg.installed:
    - pkgs: [default-jdk-headless]
    - watch:
      - mc_proxy: makina-states-jdk_begin
    - watch_in:
      - mc_proxy: makina-states-jdk_last
