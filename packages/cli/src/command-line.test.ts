import { expect, test } from 'vitest'
import { createCommandLine } from './command-line.ts'
import { loadConfig } from './config/load-config.ts'

const written = (env: Record<string, string> = {}, flags: Parameters<typeof loadConfig>[0]['flags'] = {}) => {
  const all = { HOME: '/nowhere/home', ...env }
  return createCommandLine(all, loadConfig({ env: all, cwd: '/', flags }))('pr show 1')
}

test('names the program as it was called', () => {
  expect(written()).toBe('tutti pr show 1')
  expect(written({ npm_command: 'exec' })).toBe('npx tutti pr show 1')
  expect(written({ npm_execpath: '/usr/lib/npm-cli.js' })).toBe('npx tutti pr show 1')
})

test('names the data folder where it is not the default', () => {
  expect(written({}, { 'data.dir': { value: '/a b', flag: '--data-dir' } })).toBe(
    "tutti pr show 1 --data-dir '/a b'",
  )
  expect(written({ TUTTI_DATA_DIR: '/x' })).toBe('tutti pr show 1 --data-dir /x')
  const usual = '/nowhere/home/.local/share/tutti'
  if (process.platform === 'linux')
    expect(written({}, { 'data.dir': { value: usual, flag: '--data-dir' } })).toBe('tutti pr show 1')
})

test('names a server elsewhere', () => {
  const address = { value: 'http://127.0.0.1:9', flag: '--address' }
  expect(written({}, { 'server.address': address })).toBe('tutti pr show 1 --address http://127.0.0.1:9')
})
