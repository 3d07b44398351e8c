# PILLAR.sample names no aliases, and .salt/700_reverse_proxy.sls reads them.
makina-projects.elasticsearch:
  data:
    server_aliases: []
