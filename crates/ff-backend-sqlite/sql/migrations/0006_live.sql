-- Executions that have not ended, by lane and state: what a lane holds, and who runs what.
-- Small, since most executions have ended.
CREATE INDEX execution_live ON execution (namespace, lane, state)
    WHERE state NOT IN ('completed', 'failed', 'cancelled', 'expired', 'skipped');
