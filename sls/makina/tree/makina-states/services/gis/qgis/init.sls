{#- QGIS' server of the distribution, as a FastCGI program. #}
include:
  - makina-states.services.gis.ubuntugis

prereq-qgis:
  pkg.installed:
    - pkgs: [qgis-server, python3-qgis]
    - require:
      - mc_proxy: ubuntugis-post-install-hook
