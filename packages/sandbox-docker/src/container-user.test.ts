import { expect, test } from 'vitest'
import { containerUser } from './container-user.ts'

const root = { uid: 0, gid: 0 }
const person = { uid: 1234, gid: 1234 }

test('a sandbox is never root of the host, and its files can be read and removed by the worker', () => {
  const engine = { kind: 'docker', rootless: false } as const
  expect(containerUser(engine, root)).toEqual({ uid: 1000, gid: 1000, usernsMode: 'host', foreign: true })
  expect(containerUser(engine, person)).toEqual({ ...person, usernsMode: 'host', foreign: false })
  expect(containerUser({ kind: 'podman', rootless: true }, person)).toEqual({
    ...person,
    usernsMode: 'keep-id',
    foreign: false,
  })
  // Root of a rootless Docker is that person on the host.
  expect(containerUser({ kind: 'docker', rootless: true }, person)).toMatchObject({ uid: 0, foreign: false })
})
