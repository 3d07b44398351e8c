# PILLAR.sample has no folder for uploads, and .salt/fixperms.sls reads it.
makina-projects.flask-buildout:
  data:
    media: "{data_root}/media"
