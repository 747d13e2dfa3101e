-- ff_version: which library is loaded.
-- Keys: none. Arguments: none. Reply: call version, content hash. Errors: none. Events: none.

redis.register_function{
  function_name = 'ff_version',
  callback = function()
    return { CALL_VERSION, HASH }
  end,
  flags = { 'no-writes', 'allow-stale' },
}
