import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathKey } from '@tutti/workspace'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createAgentActivity } from './agent-activity.ts'
import { createCapturedWorkspace } from './captured-workspace.ts'
import { createIgnoredPaths } from './ignored-paths.ts'
import { createPathHints } from './path-hints.ts'
import { createCapturedRepository } from './repository/captured-repository.ts'
import { startEarlyHashes } from './early-hashes.ts'
import { createWorkspaceLook, type WorkspaceLook } from './workspace-look.ts'

const never = new AbortController().signal
const maxFileBytes = 16 << 20

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-captured-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test.each([1, 5 << 20])(
  'a file of %d bytes that grows above the largest one between the walk and its reading is told of, and holds up no other',
  async (bytes) => {
    const [root, home] = [join(folder, 'work'), join(folder, 'home')]
    mkdirSync(root)
    mkdirSync(home)
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], {
        cwd: root,
        encoding: 'utf8',
      }).trim()
    git('init', '-q')
    git('commit', '-q', '--allow-empty', '-m', 'base')
    const base = git('rev-parse', 'HEAD')
    const repository = createCapturedRepository(root, home)
    const ignored = createIgnoredPaths(root, home)
    const real = createWorkspaceLook({ root, ignored, policy: { files: 'small', envFiles: false } })
    const look: WorkspaceLook = {
      ...real,
      async look(...given) {
        const seen = await real.look(...given)
        truncateSync(join(root, 'grows'), maxFileBytes + 1)
        return seen
      },
    }
    const workspace = createCapturedWorkspace({
      root,
      look,
      ignored,
      repository,
      hints: createPathHints(root),
      activity: createAgentActivity(false),
      maxFileBytes,
    })
    const restored = Promise.resolve({ tips: [base], withoutSubmodules: [], withoutRepository: false, ms: 0 })
    const earlyHashes = startEarlyHashes(root, [])
    const written = { gitlinks: new Map(), expected: new Map(), earlyHashes, restored }
    await workspace.adopt(written, never)
    repository.adopt({ base, gitlinks: [], gone: [], packs: 0, tips: [base] })
    writeFileSync(join(root, 'grows'), Buffer.alloc(bytes))
    writeFileSync(join(root, 'other'), '1')
    const told: string[] = []
    const summary = await workspace.capture(
      {
        async content(content) {
          for await (const _ of content) void _
        },
        change: async (change) =>
          void told.push(`${change.action} ${change.action === 'deleted' ? '' : pathKey(change.state.path)}`),
        skipped: async (path, reason) => void told.push(`${reason} ${pathKey(path)}`),
        async gitState(_, pack) {
          for await (const __ of pack) void __
        },
        async unwritten() {},
        committed: async () => ({ takesState: true }),
      },
      never,
    )
    expect(told).toEqual(['created other', 'too_large grows'])
    expect(summary.changes).toBe(1)
  },
)
