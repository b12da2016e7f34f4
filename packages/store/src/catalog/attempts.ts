import { TuttiError, type Attempt } from '@tutti/core'
import type { AttemptCatalog } from './port.ts'
import type { SqlExecutor } from './sql-executor.ts'

export function createAttemptCatalog({ executor }: { executor: SqlExecutor }): AttemptCatalog {
  const { db } = executor

  return {
    async put(ensembleId, attempt, signal) {
      const put = db
        .insertInto('attempts')
        .columns(['ensemble_id', 'bc_id', 'owner', 'attempt'])
        .expression(
          db
            .selectFrom('ensembles')
            .select((eb) => [
              'ensemble_id',
              eb.val(attempt.bcId).as('bc_id'),
              'owner',
              eb.val(JSON.stringify(attempt)).as('attempt'),
            ])
            .where('ensemble_id', '=', ensembleId),
        )
        .onConflict((conflict) =>
          conflict
            .columns(['ensemble_id', 'bc_id'])
            .doUpdateSet((eb) => ({ attempt: eb.ref('excluded.attempt') })),
        )
      const [stored] = await executor.write([put], signal)
      if (stored?.changes === 0) {
        throw new TuttiError('not_found', `There is no ensemble ${ensembleId}.`, { id: ensembleId })
      }
    },

    async list(ensembleId, signal) {
      const query = db
        .selectFrom('attempts')
        .leftJoin('agents', 'agents.bc_id', 'attempts.bc_id')
        .select('attempts.attempt')
        .where('attempts.ensemble_id', '=', ensembleId)
        .orderBy('agents.child_index')
        .orderBy('attempts.bc_id')
      return (await executor.read(query, signal)).map(({ attempt }) => JSON.parse(attempt) as Attempt)
    },
  }
}
