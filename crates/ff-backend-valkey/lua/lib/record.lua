-- The head of a stored record: the part that functions read. What follows it is opaque here.
-- Bytes: last event 6, revision 6, event seq 4, lease epoch 4, index 4 and type 1 of the attempt
-- that the next claim opens or continues, flags 1, length of a noted claim 2. With flag 1 follow
-- deadline 6 (0 for none), one more than the time left of the attempt 6 (0 for no limit), when
-- a pending waitpoint closes or a debt is told again 6 (0 for none), and the bytes that the next task carries besides its
-- payload 6. With flag 4, a member of a flow, follows the flow's uuid 16; flag 8 then says that the
-- next claim resumes it. With flag 16 it stands under limits of its own. Then the noted claim, then
-- the body.

local HEAD = '>I6I6I4I4I4BBI2'
local HEAD_BYTES = 28
local EPOCH_AT = 17
local FLAGS_AT = 26
local LIMITED = 1
local LIMITS = '>I6I6I6I6'
local LIMITS_BYTES = 24
local PAYLOAD_BESIDE = 2
local MEMBER = 4
local MEMBER_BYTES = 16
local RESUMES = 8
local UNDER_LIMITS = 16

-- Most bytes of a payload that stands in the record.
local INLINE_BYTES = @INLINE_BYTES@

local function has_flag(flags, flag)
  return math.floor(flags / flag) % 2 == 1
end

-- Where what follows the head and its additions begins.
local function behind_head(flags)
  return HEAD_BYTES + 1 + (has_flag(flags, LIMITED) and LIMITS_BYTES or 0)
    + (has_flag(flags, MEMBER) and MEMBER_BYTES or 0)
end

-- Whether a record in a queue has all that its head promises, and something behind it. No claim is noted
-- there: what is claimed stands in no queue.
local function is_sound(record)
  local flags, high, low = string.byte(record, FLAGS_AT, HEAD_BYTES)
  return low and high + low == 0 and #record >= behind_head(flags)
end
