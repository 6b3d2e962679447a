// The candle chart. It is the only part that uses floats for prices.
import { CandlestickSeries, ColorType, createChart, CrosshairMode, HistogramSeries } from 'lightweight-charts';
import type { CandlestickData, HistogramData, IChartApi, ISeriesApi, UTCTimestamp } from 'lightweight-charts';
import type { Kline, Symbol, Trade } from './messages.ts';
import { colour } from './theme.ts';

/** intervals are the intervals of /api/v1/market/klines, with their seconds. */
export const intervals: ReadonlyMap<string, number> = new Map([['1m', 60], ['5m', 300], ['15m', 900], ['1h', 3600], ['4h', 14_400], ['1d', 86_400]]);

export const shownCandles = 300;
const firstCandles = 120; // at first sight
const fewestCandles = 12; // fewer do not fill the width

export class Candles {
  readonly #chart: IChartApi;
  readonly #prices: ISeriesApi<'Candlestick'>;
  readonly #volumes: ISeriesApi<'Histogram'>;
  #last: (CandlestickData<UTCTimestamp> & { volume: number }) | null = null;
  #seconds = 60;
  #shown = ''; // symbol and interval of the candles

  constructor(stage: HTMLElement) {
    // The logo needs a style element, which the page's policy forbids; the footer has
    // the attribution.
    this.#chart = createChart(stage, {
      autoSize: true, crosshair: { mode: CrosshairMode.Normal }, timeScale: { timeVisible: true, barSpacing: 9, secondsVisible: false, rightOffset: 3 },
      localization: { locale: document.documentElement.lang }, // Intl may not accept the browser's
      layout: { attributionLogo: false, fontSize: 11 }, rightPriceScale: { borderVisible: false, entireTextOnly: true },
    });
    this.#prices = this.#chart.addSeries(CandlestickSeries, { borderVisible: false });
    this.#volumes = this.#chart.addSeries(HistogramSeries, { priceScaleId: '', priceFormat: { type: 'volume' }, lastValueVisible: false, priceLineVisible: false });
    this.#volumes.priceScale().applyOptions({ scaleMargins: { top: 0.82, bottom: 0 } });
    this.#prices.priceScale().applyOptions({ scaleMargins: { top: 0.08, bottom: 0.22 } });
  }

  /** applyTheme applies the theme's colours. */
  applyTheme(): void {
    const line = colour('line');
    this.#chart.applyOptions({
      layout: { background: { type: ColorType.Solid, color: colour('panel') }, textColor: colour('soft'), fontFamily: getComputedStyle(document.body).fontFamily },
      grid: { vertLines: { color: line }, horzLines: { color: line } }, timeScale: { borderColor: line },
    });
    const [up, down] = [colour('buy'), colour('sell')];
    this.#prices.applyOptions({ upColor: up, downColor: down, wickUpColor: up, wickDownColor: down });
  }

  /** show replaces all candles, oldest first. */
  show(klines: readonly Kline[], symbol: Symbol, interval: string): void {
    this.#seconds = intervals.get(interval) ?? 60;
    this.#prices.applyOptions({ priceFormat: { type: 'price', precision: symbol.price_decimals, minMove: 10 ** -symbol.price_decimals } });
    const candles = klines.map(([at, open, high, low, close, volume]) => ({
      time: (at / 1000) as UTCTimestamp, open: Number(open), high: Number(high), low: Number(low), close: Number(close), volume: Number(volume),
    }));
    this.#prices.setData(candles);
    this.#volumes.setData(candles.map((c) => this.#bar(c)));
    this.#last = candles.at(-1) ?? null;
    const of = `${symbol.symbol} ${interval}`;
    if (this.#shown !== of && candles.length > 0) {
      this.#frame(candles.length); // otherwise keep the scroll position
      this.#shown = of;
    }
  }

  // frame shows the newest candles, all of them if they are few.
  #frame(count: number): void {
    const shown = Math.min(count, firstCandles);
    this.#chart.timeScale().setVisibleLogicalRange({ from: count - Math.max(shown, fewestCandles) - 0.5, to: count + 2 });
  }

  /** add adds a trade that is newer than all candles. */
  add(t: Trade): void {
    const at = Math.floor(Date.parse(t.ts) / 1000 / this.#seconds) * this.#seconds;
    const [price, qty] = [Number(t.price), Number(t.qty)];
    const last = this.#last;
    if (last && at < last.time) return;
    const same = last && last.time === at ? last : null;
    this.#last = {
      time: at as UTCTimestamp, open: same?.open ?? price, high: Math.max(same?.high ?? price, price), low: Math.min(same?.low ?? price, price),
      close: price, volume: (same?.volume ?? 0) + qty,
    };
    this.#prices.update(this.#last);
    this.#volumes.update(this.#bar(this.#last));
  }

  #bar(c: CandlestickData<UTCTimestamp> & { volume: number }): HistogramData<UTCTimestamp> {
    return { time: c.time, value: c.volume, color: colour(c.close >= c.open ? 'buy-tint' : 'sell-tint') };
  }
}
