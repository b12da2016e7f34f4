import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { root } from './root.mjs'

const bin = join(root, 'node_modules', '.bin')

/** The Node that runs TypeScript sources: it comes as a package, so that every machine has the same. */
export function pinnedNode() {
  const path = join(bin, 'node')
  return existsSync(path) ? path : undefined
}

/** The environment in which `node`, and every tool that starts by `#!/usr/bin/env node`, is the pinned one. */
export function pinnedEnvironment(env = process.env) {
  return {
    ...env,
    PATH: [bin, env['PATH']].filter(Boolean).join(delimiter),
    TURBO_TELEMETRY_DISABLED: '1',
    DO_NOT_TRACK: '1',
  }
}
