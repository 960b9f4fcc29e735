// A worker that draws large scenes, so that the page itself only has to show a picture.

import { paint } from './paint.js';

let scene = null;
let dress = null;
let canvas = null;

self.onmessage = ({ data }) => {
  if (data.scene) scene = data.scene;
  if (data.dress) dress = data.dress;
  if (!data.paint || !scene || !dress) return;
  const { camera, size, ratio, look, id } = data.paint;
  const [width, height] = [Math.ceil(size.width * ratio), Math.ceil(size.height * ratio)];
  if (!canvas || canvas.width !== width || canvas.height !== height) canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d', { alpha: false });
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const drawn = paint(context, scene, dress, camera, size, look);
  const bitmap = canvas.transferToImageBitmap();
  self.postMessage({ bitmap, camera, size, id, drawn }, [bitmap]);
};
