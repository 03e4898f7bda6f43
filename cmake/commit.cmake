# commit_of(FOLDER RESULT WHY): the commit of these sources, with -dirty where what is compiled may differ from it.
# RESULT is empty where git cannot say; WHY is then the reason.

# What a hook or a script may have set for another repository.
set(git ${CMAKE_COMMAND} -E env --unset=GIT_DIR --unset=GIT_WORK_TREE --unset=GIT_COMMON_DIR --unset=GIT_INDEX_FILE
  --unset=GIT_OBJECT_DIRECTORY --unset=GIT_NAMESPACE --unset=GIT_PREFIX GIT_OPTIONAL_LOCKS=0 LC_ALL=C git)

function(commit_of folder result why)
  set(${result} "" PARENT_SCOPE)
  macro(ask output)
    execute_process(COMMAND ${git} ${ARGN} WORKING_DIRECTORY ${folder}
      OUTPUT_VARIABLE ${output} ERROR_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE
      RESULT_VARIABLE failed)
    if(failed)
      string(REGEX REPLACE "\n.*" "" said "${said}")
      if(NOT said)
        set(said "git: ${failed}")
      endif()
      set(${why} "${said}" PARENT_SCOPE)
      return()
    endif()
  endmacro()

  # An archive unpacked inside another repository, or over one, has that one's commit.
  ask(prefix rev-parse --show-prefix)
  if(prefix)
    set(${why} "the repository around it is another project's" PARENT_SCOPE)
    return()
  endif()
  ask(known ls-files --error-unmatch cmake/commit.cmake)
  ask(commit describe --always --dirty --abbrev=12 --exclude=*)

  # Files that kernels/CMakeLists.txt finds by itself or an include may find, ignored ones too. A name that ends with a
  # slash is another repository. After them, tracked ones that git was told not to look at.
  ask(others -c core.quotePath=false ls-files --others -- kernels bench cmake)
  ask(headers ls-files --others -- ":(glob)*.h" ":(glob)*.hpp" ":(glob)*.cuh" ":(glob)*.inc")
  ask(hidden -c core.quotePath=false ls-files -v -- kernels bench cmake CMakeLists.txt)
  set(source "([.](c|cc|cpp|cxx|cu|cuh|h|hh|hpp|hxx|inc|inl|ipp|cmake)|CMakeLists[.]txt|/)\"?\n")
  if(NOT commit MATCHES "-dirty$" AND
     (headers OR "${others}\n" MATCHES "${source}" OR "\n${hidden}" MATCHES "\n[a-zS] "))
    string(APPEND commit -dirty)
  endif()
  set(${result} ${commit} PARENT_SCOPE)
endfunction()
