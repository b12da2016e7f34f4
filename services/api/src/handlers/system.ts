import { crashPointList } from '@tutti/core'
import type { SweepBlobsRequest } from '@tutti/proto'

import type { CallContext, HandlerDeps } from '../handler.ts'
import { sweepBlobs } from '../sweep-blobs.ts'

/** `tutti.v1.SystemService`: told by whoever put the parts together, but for the sweep. */
export function createSystem(deps: HandlerDeps) {
  const { system } = deps
  return {
    getSystemInfo: (_request: unknown, { signal }: CallContext) => system.info(signal),
    doctor: (_request: unknown, { signal }: CallContext) => system.doctor(signal),
    getConfig: (_request: unknown, { signal }: CallContext) => system.configuration(signal),
    listCrashPoints: () => ({ crashPoints: [...crashPointList] }),
    async sweepBlobs({ dryRun }: SweepBlobsRequest, { signal }: CallContext) {
      const { examined, removed, bytes } = await sweepBlobs(deps, dryRun, signal)
      return { examined: BigInt(examined), removed: BigInt(removed), bytes: BigInt(bytes) }
    },
  }
}
