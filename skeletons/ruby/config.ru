require './app'
run App
