# PILLAR.sample has no users, and .salt/700_www.sls and .salt/500_ftp_install.sls read them.
makina-projects.tilestream:
  data:
    users:
      - tadmin: {password: "{password}"}
      - uploader: {password: "{password}", home: "{ftp_root}/uploader"}
