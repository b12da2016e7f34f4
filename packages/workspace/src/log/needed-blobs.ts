import type { AgentId, BlobId } from '@tutti/core'
import type { ChangedPath } from '@tutti/protocol'
import type { EventLog } from '@tutti/store'
import { isInNoCommit } from '../file-state.ts'
import { pathKey } from '../path-key.ts'
import { changeOfEvent, eventPath } from './file-events.ts'
import { readEvents } from './read-events.ts'

const types = ['file_change', 'file_sync', 'ack', 'checkpoint', 'session_saved', 'state_saved'] as const

/**
 * Blobs that are not kept for ever and that the agent's workspace, session or state needs at some position of its log that is not
 * older than `since`, its newest one included: of the files, what no checkpoint has at that position.
 */
export async function neededBlobs(
  eventLog: EventLog,
  bcId: AgentId,
  since: number,
  signal: AbortSignal,
): Promise<ReadonlySet<BlobId>> {
  const needed = new Set<BlobId>()
  /** What is needed at the position that the reading is at. */
  const now = new Map<string, { readonly hash: BlobId; readonly inNoCommit: boolean }>()
  const pending = new Map<string, ChangedPath>()
  let isOld = true
  const set = (key: string, hash: BlobId | undefined, inNoCommit: boolean) => {
    now.delete(key)
    if (hash === undefined) return
    now.set(key, { hash, inNoCommit })
    if (!isOld) needed.add(hash)
  }
  for await (const { event, at } of readEvents(eventLog, bcId, types, signal)) {
    if (isOld && at >= since) {
      isOld = false
      for (const { hash } of now.values()) needed.add(hash)
    }
    switch (event.type) {
      case 'file_change': {
        const key = `file/${pathKey(eventPath(event))}`
        set(key, event.hash, isInNoCommit(changeOfEvent(event)))
        break
      }
      // Over the sandbox's version, which is needed too, until the sandbox has it.
      case 'file_sync':
        pending.set(event.commandId, event)
        set(`sync/${event.commandId}`, event.hash, true)
        break
      case 'ack': {
        const synced = pending.get(event.commandId)
        if (!synced) break
        pending.delete(event.commandId)
        now.delete(`sync/${event.commandId}`)
        set(`file/${pathKey(eventPath(synced))}`, synced.hash, isInNoCommit(changeOfEvent(synced)))
        break
      }
      case 'checkpoint':
        for (const [key, { inNoCommit }] of now) if (!inNoCommit) now.delete(key)
        break
      default:
        set(event.type, event.blobId, true)
    }
  }
  for (const { hash } of now.values()) needed.add(hash)
  return needed
}
