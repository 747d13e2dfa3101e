-- Active executions of a namespace, lane by lane, behind a place, with their records.
-- One range of the index; the state is constant, so the order of the index is that of lane and id.
SELECT lane, id, core FROM execution INDEXED BY execution_live WHERE namespace = ?1 AND (lane, id) > (?2, ?3) AND state = 'active' AND state NOT IN ('completed', 'failed', 'cancelled', 'expired', 'skipped') ORDER BY lane, state, id LIMIT ?4
