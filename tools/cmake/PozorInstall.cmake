# install(), pozorConfig.cmake and pozor.pc.
