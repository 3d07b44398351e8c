# The application: Rack (Sinatra), served by puma.
require 'json'
require 'sinatra/base'

class App < Sinatra::Base
  set :logging, true

  get '/' do
    content_type 'text/plain'
    "It works: this page was deployed by a git push.\n"
  end

  get '/health' do
    content_type 'application/json'
    { status: 'ok' }.to_json
  end
end
