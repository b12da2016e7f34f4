import { blobIdOf } from '@tutti/blob-store'
import { TuttiError, type AgentId, type AgentStatus } from '@tutti/core'
import { decodeOffset, decodeRunEvent, encodeOffset, type RunEvent } from '@tutti/protocol'
import {
  decodeCloudAgentState,
  encodeCloudAgentState,
  foldCloudAgentState,
  initialCloudAgentState,
} from '@tutti/protocol/wire'
import type { AgentRow, SavedState } from '@tutti/store'
import type { ActivityDeps } from './deps.ts'
import { createOwnedBlobs } from './owned-blobs.ts'

/** The format of state blobs (seed 000: `PERSISTED_METADATA_VERSION_1`). */
const version = 1
/** The beginning of a prompt that is a blob: as much as a state can keep, at three bytes for each UTF-16 unit. */
const promptBytes = 48 << 10

type Deps = Pick<ActivityDeps, 'eventLog' | 'catalog' | 'blobs' | 'log'>

export interface SaveAgentState {
  readonly bcId: AgentId
  readonly owner: string
  /** The position of the log that the state shall stand for. */
  readonly upTo: number
  /** Makes the event durable, once for this position however often it is asked for. */
  readonly append: (event: Extract<RunEvent, { type: 'state_saved' }>) => Promise<unknown>
}

/**
 * Stores the agent's `CloudAgentState` (seed 000 §1) as it is at `upTo`: the last saved one and the events after it. The blob comes
 * first, then its event, then the catalog, so that neither names what is not there. Does nothing when that state is saved already, and
 * when a newer version of Tutti has saved one in its own format.
 */
export async function saveAgentState(
  deps: Deps,
  request: SaveAgentState,
  signal: AbortSignal,
): Promise<void> {
  const { bcId, owner, upTo, append } = request
  const row = await deps.catalog.agents.get(owner, bcId, signal)
  if (row.savedState && row.savedState.version !== version) {
    deps.log.warn({ bc_id: bcId, version: row.savedState.version }, 'the saved state has a newer format')
    return
  }
  const start = await loadStart(deps, row, signal)
  if (start.position >= upTo) return
  let { state, status, position } = start
  let savedAt = 0
  while (position < upTo) {
    const page = await deps.eventLog.read(bcId, position, {}, signal)
    if (page.next === position) break
    for (const record of page.records) {
      if (record.sequence > upTo) break
      const event = await completed(deps, decodeRunEvent(record), signal)
      if (event.type === 'status') status = event.status
      savedAt = record.at
      state = foldCloudAgentState(state, event, encodeOffset(bcId, record.sequence))
    }
    position = page.next
  }
  const { blobRefs } = deps.catalog
  const blobs = createOwnedBlobs(deps.blobs, (ids, using) => blobRefs.use(owner, ids, using))
  const blobId = await blobs.put(encodeCloudAgentState(state), signal)
  await append({ type: 'state_saved', blobId })
  const saved: SavedState = {
    blobId,
    offsetKey: state.lastInteractionUpdateOffsetKey,
    savedAt,
    status,
    version,
  }
  await deps.catalog.agents.saveState(bcId, saved, signal)
}

/** The log is the truth: without a state that can be read, it is read from its start. */
async function loadStart({ blobs, log }: Deps, row: AgentRow, signal: AbortSignal) {
  const { bcId, savedState } = row
  if (savedState) {
    try {
      const state = decodeCloudAgentState(await blobs.get(savedState.blobId, signal))
      return { state, status: savedState.status, position: decodeOffset(bcId, savedState.offsetKey) }
    } catch (thrown) {
      const error = TuttiError.from(thrown)
      if (error.code !== 'data_loss' && error.code !== 'not_found') throw error
      log.warn({ bc_id: bcId, err: error }, 'the saved state cannot be read; it is made anew')
    }
  }
  const status: AgentStatus = 'UNSPECIFIED'
  return { state: initialCloudAgentState(row), status: status as AgentStatus, position: 0 }
}

/** A message with its text, as far as a state keeps it, and with the blob that its prompt is. */
async function completed({ blobs }: Deps, event: RunEvent, signal: AbortSignal): Promise<RunEvent> {
  if (event.type !== 'user_message') return event
  if (event.text !== undefined) return { ...event, blobId: event.blobId ?? blobIdOf(event.text) }
  if (!event.blobId) return event
  const bytes = await blobs.get(event.blobId, signal, { start: 0, end: promptBytes })
  return { ...event, text: new TextDecoder().decode(bytes) }
}
