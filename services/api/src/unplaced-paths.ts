import type { AgentId } from '@tutti/core'
import type { RunEvent } from '@tutti/protocol'
import { changePath, pathKey } from '@tutti/workspace'
import { recoverWorkspace } from '@tutti/workspace/log'

import { followLog } from './follow-log.ts'
import type { HandlerDeps } from './handler.ts'

export type Unplaced = Extract<RunEvent, { type: 'file_sync_failed' }>

/** The rest of the log is not decoded for it. */
const recordTypes: ReadonlySet<string> = new Set(['ack', 'file_sync_failed', 'sandbox'])

/**
 * What the user had changed when a sandbox was ready, and it could not have. Each of those changes is tried then, so the log is read until it
 * has said of all of them how that went, or until this sandbox is no more.
 *
 * @param request.from position at which the sandbox was ready
 * @param request.until where to end at the latest
 */
export async function unplacedPaths(
  { eventLog, reads, recordViews, config }: HandlerDeps,
  { bcId, from, until }: { readonly bcId: AgentId; readonly from: number; readonly until: number },
  signal: AbortSignal,
): Promise<readonly Unplaced[]> {
  const { pending } = await recoverWorkspace(eventLog, bcId, signal, from)
  // Of a path the newest change alone is tried.
  const newest = new Map(pending.map(({ commandId, change }) => [pathKey(changePath(change)), commandId]))
  const open = new Set(newest.values())
  const unplaced: Unplaced[] = []
  if (open.size === 0) return unplaced
  for await (const look of followLog(reads, bcId, from, config['stream.heartbeat'], signal)) {
    for (const record of look.records) {
      if (!recordTypes.has(record.type)) continue
      const { event } = recordViews.of(bcId, record)
      if (event.type === 'sandbox') return unplaced
      if (event.type !== 'ack' && event.type !== 'file_sync_failed') continue
      const isOne = open.delete(event.commandId)
      if (isOne && event.type === 'file_sync_failed') unplaced.push(event)
    }
    if (open.size === 0 || look.closed || look.position >= until) return unplaced
  }
  return unplaced
}
