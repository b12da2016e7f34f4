import { TuttiError, type Clock } from '@tutti/core'
import type { IdempotencyCatalog } from './port.ts'
import type { SqlExecutor } from './sql-executor.ts'

export function createIdempotencyCatalog({
  executor,
  clock,
}: {
  executor: SqlExecutor
  clock: Clock
}): IdempotencyCatalog {
  const { db } = executor

  return {
    async claim(owner, key, digest, answer, signal) {
      const claim = db
        .insertInto('idempotency_keys')
        .values({ owner, key, digest, answer, created_at: clock.now() })
        .onConflict((conflict) => conflict.doNothing())
      const select = db
        .selectFrom('idempotency_keys')
        .select(['digest', 'answer'])
        .where('owner', '=', owner)
        .where('key', '=', key)
      const [claimed, found] = await executor.write([claim, select], signal)
      const first = found?.rows[0] as { digest: string; answer: string }
      if (first.digest === digest) return { answer: first.answer, repeated: claimed?.changes === 0 }
      throw new TuttiError(
        'already_exists',
        `The key ${JSON.stringify(key)} was used with another request. Use a new key for a new request.`,
        { key },
      )
    },
  }
}
