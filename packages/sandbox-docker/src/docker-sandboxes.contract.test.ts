import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testSandboxContract } from '@tutti/sandbox/contract'
import { importTestImage, startPodman } from '@tutti/testkit'
import { expect, inject, test } from 'vitest'
import { createDockerSandboxes } from './docker-sandboxes.ts'
import { testPolicy } from './test-policy.ts'

declare module 'vitest' {
  interface ProvidedContext {
    engineMissing: string
  }
}

const why = inject('engineMissing')

test('there is an engine to run the contract against', (context) => {
  if (why !== '') context.skip(why)
  expect(why).toBe('')
})

for (const disk of why === '' ? (['mount', 'watchdog'] as const) : []) {
  testSandboxContract(`docker, on Podman, disk by ${disk}`, async () => {
    const engine = await startPodman()
    const folder = mkdtempSync(join(tmpdir(), 'tutti sandbox '))
    // The user inside is another than the one that runs the tests.
    chmodSync(folder, 0o755)
    writeFileSync(join(folder, 'given.txt'), 'given')
    const image = await importTestImage(engine, 'complete')
    return {
      provider: createDockerSandboxes({
        root: join(folder, 'sandboxes'),
        nodePath: process.execPath,
        image,
        socketPath: engine.socketPath,
        stopGraceMs: 300,
        disk,
      }),
      policy: testPolicy,
      folder,
      async dispose() {
        await engine.dispose()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  })
}
