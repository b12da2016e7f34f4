import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { connectEngine } from './engine.ts'
import { findEngine } from './find-engine.ts'

test('the option comes first, then DOCKER_HOST, then a socket in the usual places', async () => {
  const runtime = mkdtempSync(join(tmpdir(), 'tutti-'))
  onTestFinished(() => rmSync(runtime, { recursive: true }))
  mkdirSync(join(runtime, 'podman'))
  const usual = join(runtime, 'podman', 'podman.sock')
  const server = createServer().listen(usual)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const env = { DOCKER_HOST: 'unix:///of/docker.sock', XDG_RUNTIME_DIR: runtime }
  expect(findEngine({ socketPath: '/of/option.sock', env }).socketPath).toBe('/of/option.sock')
  expect(findEngine({ env })).toEqual({ socketPath: '/of/docker.sock', from: 'DOCKER_HOST' })
  const { from, socketPath } = findEngine({ env: { XDG_RUNTIME_DIR: runtime } })
  expect(from).toBe('usual place')
  // A machine may have an engine of its own.
  expect([usual, '/var/run/docker.sock']).toContain(socketPath)
})

test('an engine on another machine is refused', () => {
  for (const host of ['tcp://10.0.0.1:2376', 'ssh://somewhere']) {
    expect(() => findEngine({ env: { DOCKER_HOST: host } })).toThrow(
      expect.objectContaining({
        code: 'failed_precondition',
        message: expect.stringContaining(host) as string,
      }),
    )
  }
})

test('a socket that nobody serves says how to get an engine', async () => {
  await expect(connectEngine({ socketPath: '/nonexistent/docker.sock', env: {} })).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(
      /\/nonexistent\/docker\.sock does not answer \(ENOENT\).*Install Docker or Podman.*DOCKER_HOST/,
    ) as string,
    detail: { socket: '/nonexistent/docker.sock' },
  })
})
