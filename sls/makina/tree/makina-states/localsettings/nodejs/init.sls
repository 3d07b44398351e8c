{#- Node.js and npm of the distribution. #}
include:
  - makina-states.localsettings.nodejs.hooks

nodejs-packages:
  pkg.installed:
    - pkgs: [nodejs, npm]
    - watch:
      - mc_proxy: nodejs-pre-system-install
    - watch_in:
      - mc_proxy: nodejs-post-system-install
