import { TuttiError, type Clock } from '@tutti/core'
import type { Insertable, Selectable, Updateable } from 'kysely'
import type { AgentsTable } from '../schema.ts'
import { makePage, readPage } from './page-token.ts'
import type { AgentCatalog, AgentProjection, AgentRow, NewAgent } from './port.ts'
import type { SqlExecutor } from './sql-executor.ts'
import { defined, takenAs } from './sql-values.ts'

const unknown = (id: string) => new TuttiError('not_found', `There is no agent ${id}.`, { id })

export function createAgentCatalog({
  executor,
  clock,
}: {
  executor: SqlExecutor
  clock: Clock
}): AgentCatalog {
  const { db } = executor

  return {
    async insert(agent, signal) {
      const insertion = db.insertInto('agents').values(agentValues(agent))
      await executor.write([insertion], signal).catch(takenAs(`Agent ${agent.bcId}`, agent.bcId))
    },

    async get(owner, bcId, signal) {
      const query = db.selectFrom('agents').selectAll().where('owner', '=', owner).where('bc_id', '=', bcId)
      const [row] = await executor.read(query, signal)
      if (!row) throw unknown(bcId)
      return toAgent(row)
    },

    async list(owner, { statuses, ensembleId }, request, signal) {
      const list = ['agents', owner, statuses ?? null, ensembleId ?? null]
      const place = readPage(request, list)
      const query = db
        .selectFrom('agents')
        .selectAll()
        .where('owner', '=', owner)
        .$if(statuses !== undefined, (select) => select.where('status', 'in', statuses ?? []))
        .$if(ensembleId !== undefined, (select) => select.where('ensemble_id', '=', ensembleId ?? null))
        .$if(place.before !== undefined, (select) =>
          select.where('bc_id', '<', place.before as AgentRow['bcId']),
        )
        .orderBy('bc_id', 'desc')
        .limit(place.limit + 1)
      return makePage(await executor.read(query, signal), place, list, (row) => row.bc_id, toAgent)
    },

    async project(bcId, projection, signal) {
      const update = db
        .updateTable('agents')
        .set({ ...projectedValues(projection), updated_at: clock.now() })
        .where('bc_id', '=', bcId)
        .where('log_sequence', '<=', projection.logSequence)
      const known = db.selectFrom('agents').select('bc_id').where('bc_id', '=', bcId)
      const [updated, found] = await executor.write([update, known], signal)
      if (found?.rows.length === 0) throw unknown(bcId)
      return (updated?.changes ?? 0) > 0
    },

    async saveState(bcId, saved, signal) {
      const update = db
        .updateTable('agents')
        .set({
          state_blob_id: saved.blobId,
          state_offset_key: saved.offsetKey,
          state_saved_at: saved.savedAt,
          state_status: saved.status,
          state_version: saved.version,
        })
        .where('bc_id', '=', bcId)
        .where((where) =>
          where.or([where('state_offset_key', 'is', null), where('state_offset_key', '<', saved.offsetKey)]),
        )
      const [updated] = await executor.write([update], signal)
      return updated?.changes === 1
    },

    async markStarted(bcId, signal) {
      const update = db.updateTable('agents').set({ starting: 0 }).where('bc_id', '=', bcId)
      const [updated] = await executor.write([update], signal)
      if (updated?.changes === 0) throw unknown(bcId)
    },

    async listStarting(createdBefore, signal) {
      const query = db
        .selectFrom('agents')
        .selectAll()
        .where('starting', '=', 1)
        .where('created_at', '<', createdBefore)
        .orderBy('created_at')
      return (await executor.read(query, signal)).map(toAgent)
    },

    async scan(after, limit, signal) {
      const query = db
        .selectFrom('agents')
        .selectAll()
        .where('bc_id', '>', after as AgentRow['bcId'])
        .orderBy('bc_id')
        .limit(limit)
      return (await executor.read(query, signal)).map(toAgent)
    },

    async listInactive(updatedBefore, limit, signal) {
      const query = db
        .selectFrom('agents')
        .selectAll()
        .where('status', 'in', ['IDLE', 'ERROR', 'ARCHIVED'])
        .where('updated_at', '<', updatedBefore)
        .orderBy('updated_at')
        .limit(limit)
      return (await executor.read(query, signal)).map(toAgent)
    },
  }
}

export const agentValues = (agent: NewAgent): Insertable<AgentsTable> => ({
  bc_id: agent.bcId,
  owner: agent.owner,
  ensemble_id: agent.ensembleId ?? null,
  child_index: agent.childIndex ?? null,
  title: agent.title,
  repository: agent.repository,
  agent_spec: agent.agentSpec,
  config_blob_id: agent.configBlobId,
  created_at: agent.createdAt,
  updated_at: agent.createdAt,
  starting: 1,
  status: agent.state.status,
  state: JSON.stringify(agent.state),
  had_sandbox: 0,
  incarnation: 0,
  turns: 0,
  base_commit: null,
  commit_id: null,
  files_changed: 0,
  branch: null,
  pr_url: null,
  log_sequence: 0,
  state_blob_id: null,
  state_offset_key: null,
  state_saved_at: null,
  state_status: null,
  state_version: null,
  open_question: null,
})

function projectedValues(projection: AgentProjection): Updateable<AgentsTable> {
  const { state, hadSandbox, openQuestion } = projection
  return {
    ...(state && {
      log_sequence: projection.logSequence,
      status: state.status,
      state: JSON.stringify(state),
    }),
    ...(hadSandbox !== undefined && { had_sandbox: hadSandbox ? 1 : 0 }),
    ...(openQuestion !== undefined && { open_question: openQuestion && JSON.stringify(openQuestion) }),
    ...defined({
      incarnation: projection.incarnation,
      turns: projection.turns,
      base_commit: projection.baseCommit,
      commit_id: projection.commit,
      files_changed: projection.filesChanged,
      branch: projection.branch,
      pr_url: projection.prUrl,
    }),
  }
}

const toAgent = (row: Selectable<AgentsTable>): AgentRow => ({
  bcId: row.bc_id,
  owner: row.owner,
  title: row.title,
  repository: row.repository,
  agentSpec: row.agent_spec,
  configBlobId: row.config_blob_id,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  starting: row.starting === 1,
  state: JSON.parse(row.state) as AgentRow['state'],
  hadSandbox: row.had_sandbox === 1,
  incarnation: row.incarnation,
  turns: row.turns,
  filesChanged: row.files_changed,
  logSequence: row.log_sequence,
  ...defined({
    ensembleId: row.ensemble_id,
    childIndex: row.child_index,
    baseCommit: row.base_commit,
    commit: row.commit_id,
    branch: row.branch,
    prUrl: row.pr_url,
  }),
  ...savedStateOf(row),
  ...(row.open_question !== null && {
    openQuestion: JSON.parse(row.open_question) as NonNullable<AgentRow['openQuestion']>,
  }),
})

function savedStateOf(row: Selectable<AgentsTable>): Pick<AgentRow, 'savedState'> {
  const { state_blob_id: blobId, state_offset_key: offsetKey, state_status: status } = row
  if (blobId === null || offsetKey === null || status === null) return {}
  const savedState = { blobId, offsetKey, status, savedAt: row.state_saved_at!, version: row.state_version! }
  return { savedState }
}
