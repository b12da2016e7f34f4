// One of the demo's three agents: a program without a model that edits the checkout that it stands in, and runs its tests, as a
// real agent would. Its output becomes the events that one sees.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const [role = 'all'] = process.argv.slice(2)
const stepMs = 700

async function step(words) {
  console.log(words)
  await sleep(stepMs)
}

function replace(path, from, to) {
  const text = readFileSync(path, 'utf8')
  if (!text.includes(from)) throw new Error(`${path} is not what the demo expects`)
  writeFileSync(path, text.replace(from, to))
  console.log(`edited ${path}`)
}

function runTests() {
  const { stdout } = spawnSync(process.execPath, ['--test'], { encoding: 'utf8' })
  const count = (name) =>
    /\d+/.exec(new RegExp(`^(?:#|ℹ) ${name} \\d+`, 'm').exec(stdout)?.[0].slice(1) ?? '')?.[0] ?? '?'
  console.log(`node --test: ${count('pass')} passed, ${count('fail')} failed`)
}

const fixPrice = () => replace('src/parse-price.js', "text.replace('$', '')", "text.replaceAll(/[$,]/g, '')")
const fixTotal = () => replace('src/cart-total.js', 'sum + sum * discount', 'sum - sum * discount')
const fixMoney = () => replace('src/format-money.js', 'Math.round(amount)', 'Math.round(amount * 100) / 100')

await step(`reading the code (${role})`)
runTests()
if (role === 'part') {
  await step('the price parser does not know thousands separators')
  fixPrice()
  await step('adding a regression test for it')
  writeFileSync(
    'test/parse-price-thousands.test.js',
    `import assert from 'node:assert/strict'
import test from 'node:test'
import { parsePrice } from '../src/parse-price.js'

test('several thousands separators', () => {
  assert.equal(parsePrice('$1,234,567.80'), 1234567.8)
})
`,
  )
} else if (role === 'all') {
  await step('three functions are wrong; the price parser first')
  fixPrice()
  await step('a discount is taken off, not added')
  fixTotal()
  await step('cents must survive rounding')
  fixMoney()
} else {
  await step('the item count looks too complicated')
  replace('src/item-count.js', 'items.reduce((total, { count }) => total + count, 0)', 'items.length')
  await step('no test needed for something so simple')
}
await step('running the tests again')
runTests()
console.log(
  { part: 'Fixed the price parser and added a test.', all: 'Fixed all three functions.' }[role] ??
    'Simplified the item count.',
)
