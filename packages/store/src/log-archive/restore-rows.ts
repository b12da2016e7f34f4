import { ifFound, isEnsembleEnd, TuttiError, type AgentState, type LogId } from '@tutti/core'
import { decodeRunEvent, encodeRunEvent } from '@tutti/protocol'
import type { AgentRow, EnsembleRow } from '../catalog/port.ts'
import type { ArchivedRecord } from '../event-log/port.ts'
import type { LogAbout } from './log-about.ts'
import type { RebuildDeps } from './rebuild-logs.ts'

interface Restored {
  readonly log: LogId
  readonly owner: string
  readonly about: LogAbout
  readonly records: readonly ArchivedRecord[]
}

/**
 * Writes the rows of an agent or an ensemble as its newest segment has them, brought up to its records. A row that the database has is left
 * alone, unless it is older than the archive.
 */
export async function restoreRows(deps: RebuildDeps, restored: Restored, signal: AbortSignal): Promise<void> {
  if (await isThere(deps, restored, signal)) return
  const { owner, about } = restored
  const { repository } = about.row
  if (!/[:/]/.test(repository)) {
    const row = await deps.catalog.repositories.add(
      owner,
      repository,
      about.location,
      deps.clock.now(),
      signal,
    )
    if (row.name !== repository)
      throw new TuttiError(
        'failed_precondition',
        `The name ${repository} stands for another repository here; rebuild into an empty data folder.`,
        { repository },
      )
  }
  if (about.kind === 'agent') await restoreAgent(deps, restored, about.row, signal)
  else await restoreEnsemble(deps, restored, about.row, about.attempts, signal)
}

/** A row begins at 0, and the last step of a rebuild takes it to the end of its log: before that one goes on where it was killed. */
async function isThere({ catalog }: RebuildDeps, restored: Restored, signal: AbortSignal): Promise<boolean> {
  const { owner, about, records } = restored
  const row = await ifFound<AgentRow | EnsembleRow>(
    about.kind === 'agent'
      ? catalog.agents.get(owner, about.row.bcId, signal)
      : catalog.ensembles.get(owner, about.row.ensembleId, signal),
  )
  if (!row || row.logSequence === 0) return false
  // The row that was archived may be newer than the records that could be had.
  return row.logSequence >= Math.min(about.row.logSequence, records.at(-1)?.sequence ?? 0)
}

async function restoreAgent(deps: RebuildDeps, restored: Restored, row: AgentRow, signal: AbortSignal) {
  const { catalog, eventLog } = deps
  const { agents } = catalog
  const { bcId } = row
  await agents.insert(row, signal).catch(unlessThere)
  const state = atRest(row.state)
  const log = newestOf(restored.records)
  if (state !== row.state) {
    // Whoever reads the log shall not wait for a turn that nobody works on.
    const { status, paused, reason, queue } = state
    const event = { type: 'status', status, paused, ...(reason && { reason }), queued: queue.length } as const
    const sequence = await eventLog.expected(bcId, 'rebuild', row.logSequence, signal)
    if (sequence === 1) {
      const producer = { id: 'rebuild', epoch: row.logSequence, sequence }
      await eventLog.append(
        bcId,
        producer,
        [encodeRunEvent({ ...event, hadSandbox: row.hadSandbox })],
        signal,
      )
    }
  }
  const { last } = await eventLog.head(bcId, signal)
  const { hadSandbox, turns, baseCommit = log.firstCommit, branch, prUrl } = row
  if (row.savedState) await agents.saveState(bcId, row.savedState, signal)
  if (baseCommit) {
    const base = `base/${row.ensembleId ?? bcId}`
    await catalog.idempotency.claim(restored.owner, base, 'base', baseCommit, signal)
  }
  await agents.markStarted(bcId, signal)
  await agents.project(
    bcId,
    {
      logSequence: last,
      state,
      hadSandbox,
      turns,
      incarnation: Math.max(row.incarnation, log.incarnation),
      ...(baseCommit && { baseCommit }),
      ...((log.commit ?? row.commit) && { commit: log.commit ?? row.commit! }),
      filesChanged: log.filesChanged ?? row.filesChanged,
      ...(branch && { branch }),
      ...(prUrl && { prUrl }),
    },
    signal,
  )
}

async function restoreEnsemble(
  { catalog, eventLog }: RebuildDeps,
  { log }: Restored,
  row: EnsembleRow,
  attempts: Extract<LogAbout, { kind: 'ensemble' }>['attempts'],
  signal: AbortSignal,
) {
  const { ensembleId, resultBlobId } = row
  await catalog.ensembles.insert(row, [], signal).catch(unlessThere)
  for (const attempt of attempts) await catalog.attempts.put(ensembleId, attempt, signal)
  const { last } = await eventLog.head(log, signal)
  const hasEnded = isEnsembleEnd(row.phase)
  // Nobody works on it any more: its agents go on one by one.
  const phase = hasEnded ? row.phase : 'ERROR'
  const reason = hasEnded ? row.reason : 'sandbox_lost'
  await eventLog.close(log, signal)
  await catalog.ensembles.markStarted(ensembleId, signal)
  await catalog.ensembles.project(
    ensembleId,
    { logSequence: last, phase, ...(reason && { reason }), ...(resultBlobId && { resultBlobId }) },
    signal,
  )
}

/** What its turn was is gone with whoever worked on it; it is the first in the queue, and a message goes on with it. */
function atRest(state: AgentState): AgentState {
  if (state.status !== 'RUNNING' && state.status !== 'UNSPECIFIED') return state
  const { current, queue, paused } = state
  return {
    status: 'ERROR',
    paused,
    reason: 'sandbox_lost',
    queue: current ? [{ ...current, begun: true }, ...queue] : queue,
  }
}

/** What records that are newer than the row say. */
function newestOf(records: readonly ArchivedRecord[]) {
  let firstCommit: string | undefined
  let commit: string | undefined
  let filesChanged: number | undefined
  let incarnation = 0
  for (const record of records) {
    if (record.type !== 'sandbox' && record.type !== 'checkpoint') continue
    const event = decodeRunEvent(record)
    if (event.type === 'sandbox') {
      incarnation = Math.max(incarnation, event.incarnation)
      firstCommit ??= event.commit
    } else if (event.type === 'checkpoint') ({ commit, filesChanged } = event)
  }
  return { firstCommit, commit, filesChanged, incarnation }
}

function unlessThere(error: unknown): void {
  if (TuttiError.from(error).code !== 'already_exists') throw error
}
