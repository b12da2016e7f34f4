import { crashPoints } from '@tutti/core'

import type { CallContext, HandlerDeps } from '../handler.ts'

/** `tutti.v1.SystemService`: told by whoever put the parts together. */
export function createSystem({ system }: HandlerDeps) {
  return {
    getSystemInfo: (_request: unknown, { signal }: CallContext) => system.info(signal),
    doctor: (_request: unknown, { signal }: CallContext) => system.doctor(signal),
    getConfig: (_request: unknown, { signal }: CallContext) => system.configuration(signal),
    listCrashPoints: () => ({
      crashPoints: Object.entries(crashPoints).map(([name, description]) => ({ name, description })),
    }),
  }
}
