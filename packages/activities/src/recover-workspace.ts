import { foldChanges, isEmptyFolder, type CapturedChange } from '@tutti/workspace'
import type { AgentId, BlobId } from '@tutti/core'
import type { EventLog } from '@tutti/store'
import { readEvents } from './read-events.ts'
import { changeOfEvent } from './workspace-tracker.ts'

/** The newest acknowledged state of a workspace: a commit, and the changes after it (seed 003). */
export interface RecoveredWorkspace {
  /** The newest checkpoint; undefined when there was none. */
  readonly commit: string | undefined
  /** Latest state of each path that changed after it, and every empty folder, which no commit has; in an order that can be applied. */
  readonly changes: readonly CapturedChange[]
  /** What the agent exported last of its session. */
  readonly exported: BlobId | undefined
  /** Tool calls that were under way when the last sandbox was lost. */
  readonly openCalls: readonly OpenCall[]
}

export interface OpenCall {
  readonly callId: string
  readonly toolName: string
}

const types = [
  'checkpoint',
  'file_change',
  'session_saved',
  'tool_call_started',
  'tool_call_completed',
] as const

/**
 * Reads the log: the latest checkpoint, and every later `file_change` folded to one state for each path. Call it when nobody else
 * can write the log as a sandbox any more.
 */
export async function recoverWorkspace(
  eventLog: EventLog,
  bcId: AgentId,
  signal: AbortSignal,
): Promise<RecoveredWorkspace> {
  const changes = new Map<string, CapturedChange>()
  const openCalls = new Map<string, OpenCall>()
  let commit: string | undefined
  let exported: BlobId | undefined
  for await (const { event } of readEvents(eventLog, bcId, types, signal)) {
    if (event.type === 'checkpoint') {
      commit = event.commit
      for (const [key, change] of changes) if (!isEmptyFolder(change)) changes.delete(key)
    } else if (event.type === 'file_change') {
      changes.set(event.pathB64 ?? event.path, changeOfEvent(event))
    } else if (event.type === 'session_saved') {
      exported = event.blobId
    } else if (event.type === 'tool_call_started') {
      openCalls.set(event.callId, { callId: event.callId, toolName: event.toolName })
    } else {
      openCalls.delete(event.callId)
    }
  }
  return { commit, changes: foldChanges(changes.values()), exported, openCalls: [...openCalls.values()] }
}

/** Tool calls in the log that have no end. */
export async function readOpenCalls(
  eventLog: EventLog,
  bcId: AgentId,
  signal: AbortSignal,
): Promise<readonly OpenCall[]> {
  return (await recoverWorkspace(eventLog, bcId, signal)).openCalls
}
