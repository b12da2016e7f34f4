import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../config/load-config.ts'
import { sandboxCheck } from './sandbox-check.ts'

const check = async (env: Readonly<Record<string, string>>) => {
  const root = mkdtempSync(join(tmpdir(), 'tutti-doctor-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  const { values } = loadConfig({
    env: { HOME: root, TUTTI_SANDBOXES_PROVIDER: 'docker', ...env },
    cwd: root,
  })
  return sandboxCheck(root, values, env)
}

test('containers without the name of an image: doctor says how to give one', async () => {
  expect(await check({})).toMatchObject({
    status: 'failed',
    fix: expect.stringContaining('TUTTI_SANDBOXES_IMAGE=NAME') as string,
  })
})

test('containers without an engine that answers: doctor says how to get one', async () => {
  const env = { TUTTI_SANDBOXES_IMAGE: 'any', TUTTI_SANDBOXES_ENGINE: '/nonexistent/docker.sock' }
  expect(await check(env)).toMatchObject({
    status: 'failed',
    found: 'no container engine',
    fix: expect.stringMatching(
      /nonexistent\/docker\.sock does not answer .*Install Docker or Podman/,
    ) as string,
  })
})
