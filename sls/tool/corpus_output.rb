require 'json'

# corpus_output writes an output of the step: value, anything that JSON has, under the title. It is not a change of the machine.
Puppet::Type.newtype(:corpus_output) do
  @doc = 'Writes an output of the step of corpus-git: value under the title.'

  newparam(:name, namevar: true) do
    desc 'The name of the output.'
  end

  newparam(:value) do
    desc 'The value.'
  end

  newproperty(:written) do
    desc 'Whether it is written: always.'
    defaultto :yes
    newvalue(:yes)

    def retrieve
      :yes
    end

    def insync?(_is)
      return true if resource.noop?
      path = ENV['CORPUS_OUTPUTS']
      raise Puppet::Error, 'there is no CORPUS_OUTPUTS: this is not a step of a deployment' if path.nil?
      File.open(path, File::WRONLY | File::APPEND) do |f|
        f.write("\n" + JSON.generate(resource[:name] => resource[:value]) + "\n")
      end
      true
    end
  end
end
