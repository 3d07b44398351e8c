{#- The names are those of makina-states, which projects order themselves by: each hook is changed when the one before it is. #}
golang-pre-install:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: golang-post-install

golang-post-install:
  mc_proxy.hook: []
