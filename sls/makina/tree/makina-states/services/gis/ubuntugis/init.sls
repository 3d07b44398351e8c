{#- The libraries of geography of the distribution. #}
include:
  - makina-states.services.gis.ubuntugis.hooks

ubuntugis-packages:
  pkg.installed:
    - pkgs: [gdal-bin, libgdal-dev, libgeos-dev, libproj-dev]
    - watch:
      - mc_proxy: ubuntugis-pre-install-hook
    - watch_in:
      - mc_proxy: ubuntugis-post-install-hook
