import type { HandlerContext } from '@connectrpc/connect'

import type { ApiDeps } from './api-deps.ts'
import type { JsonBlobs } from './json-blobs.ts'
import type { PendingTurns } from './pending-turns.ts'
import type { RecordViews } from './record-views.ts'
import type { SavedStates } from './saved-states.ts'
import type { SharedReads } from './shared-reads.ts'

/** What handlers share beside the dependencies of the API. */
export interface HandlerDeps extends ApiDeps {
  readonly jsonBlobs: JsonBlobs
  readonly pendingTurns: PendingTurns
  readonly recordViews: RecordViews
  readonly reads: SharedReads
  readonly savedStates: SavedStates
}

/** The part of Connect's context that handlers use. */
export type CallContext = Pick<HandlerContext, 'signal' | 'values'>
