{#- The names are those of makina-states, which projects order themselves by: each hook is changed when the one before it is. #}
makina-states-jdk_begin:
  mc_proxy.hook:
    - watch_in:
      - mc_proxy: makina-states-jdk_last

makina-states-jdk_last:
  mc_proxy.hook: []
