import { TuttiError, initialEnsembleState, type Clock } from '@tutti/core'
import type { Selectable } from 'kysely'
import type { EnsemblesTable } from '../schema.ts'
import { agentValues } from './agents.ts'
import { makePage, readPage } from './page-token.ts'
import type { EnsembleCatalog, EnsembleRow } from './port.ts'
import type { SqlExecutor } from './sql-executor.ts'
import { defined, takenAs } from './sql-values.ts'

const unknown = (id: string) => new TuttiError('not_found', `There is no ensemble ${id}.`, { id })

export function createEnsembleCatalog({
  executor,
  clock,
}: {
  executor: SqlExecutor
  clock: Clock
}): EnsembleCatalog {
  const { db } = executor

  return {
    async insert(ensemble, children, signal) {
      const row = db.insertInto('ensembles').values({
        ensemble_id: ensemble.ensembleId,
        owner: ensemble.owner,
        title: ensemble.title,
        repository: ensemble.repository,
        strategy: ensemble.strategy,
        config_blob_id: ensemble.configBlobId,
        child_ids: JSON.stringify(ensemble.childIds),
        created_at: ensemble.createdAt,
        updated_at: ensemble.createdAt,
        starting: 1,
        phase: initialEnsembleState.phase,
        reason: null,
        result_blob_id: null,
        log_sequence: 0,
      })
      const childRows = children.map((child) => db.insertInto('agents').values(agentValues(child)))
      const failed = takenAs(`Ensemble ${ensemble.ensembleId} or one of its agents`, ensemble.ensembleId)
      await executor.write([row, ...childRows], signal).catch(failed)
    },

    async get(owner, ensembleId, signal) {
      const query = db
        .selectFrom('ensembles')
        .selectAll()
        .where('owner', '=', owner)
        .where('ensemble_id', '=', ensembleId)
      const [row] = await executor.read(query, signal)
      if (!row) throw unknown(ensembleId)
      return toEnsemble(row)
    },

    async list(owner, request, signal) {
      const list = ['ensembles', owner]
      const place = readPage(request, list)
      const query = db
        .selectFrom('ensembles')
        .selectAll()
        .where('owner', '=', owner)
        .$if(place.before !== undefined, (select) =>
          select.where('ensemble_id', '<', place.before as EnsembleRow['ensembleId']),
        )
        .orderBy('ensemble_id', 'desc')
        .limit(place.limit + 1)
      return makePage(await executor.read(query, signal), place, list, (row) => row.ensemble_id, toEnsemble)
    },

    async project(ensembleId, { logSequence, phase, reason, resultBlobId }, signal) {
      const update = db
        .updateTable('ensembles')
        .set({
          log_sequence: logSequence,
          updated_at: clock.now(),
          ...defined({ phase, reason, result_blob_id: resultBlobId }),
        })
        .where('ensemble_id', '=', ensembleId)
        .where('log_sequence', '<=', logSequence)
      const known = db.selectFrom('ensembles').select('ensemble_id').where('ensemble_id', '=', ensembleId)
      const [updated, found] = await executor.write([update, known], signal)
      if (found?.rows.length === 0) throw unknown(ensembleId)
      return (updated?.changes ?? 0) > 0
    },

    async markStarted(ensembleId, signal) {
      const update = db.updateTable('ensembles').set({ starting: 0 }).where('ensemble_id', '=', ensembleId)
      const [updated] = await executor.write([update], signal)
      if (updated?.changes === 0) throw unknown(ensembleId)
    },

    async listStarting(createdBefore, signal) {
      const query = db
        .selectFrom('ensembles')
        .selectAll()
        .where('starting', '=', 1)
        .where('created_at', '<', createdBefore)
        .orderBy('created_at')
      return (await executor.read(query, signal)).map(toEnsemble)
    },
  }
}

const toEnsemble = (row: Selectable<EnsemblesTable>): EnsembleRow => ({
  ensembleId: row.ensemble_id,
  owner: row.owner,
  title: row.title,
  repository: row.repository,
  strategy: row.strategy,
  configBlobId: row.config_blob_id,
  childIds: JSON.parse(row.child_ids) as EnsembleRow['childIds'],
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  starting: row.starting === 1,
  phase: row.phase,
  logSequence: row.log_sequence,
  ...defined({ reason: row.reason, resultBlobId: row.result_blob_id }),
})
